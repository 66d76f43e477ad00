"""A server for model files: ``rankplane serve``.

``supervisor`` is the process that was started: it loads models, forks workers that share their memory, and replaces the workers
when a file is replaced. ``worker`` is one of these, ``app`` what it answers, ``batching`` how small requests are predicted
together, ``questions`` and ``answers`` the JSON that comes in and goes out, ``page`` what a browser shows.
"""
