"""The paper's tables and figures, one module each, and what lies past them: ``make paper``.

A module names its lines, makes jobs, and writes its section of ``docs/reproduction.md`` from the lines alone:

- ``jobs(collection, notebook)`` yields what there is to compute. Every result is a JSON line under ``results/``; a job whose line
  is there is not done again, so a run that was cut short goes on where it ended.
- ``section(notebook, pictures)`` reads lines, draws its figure if it has one, and returns its text.
"""
