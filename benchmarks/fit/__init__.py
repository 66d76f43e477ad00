"""Fitting: the same rows and ranks to every competitor, the time of the fit alone, and what the answer is worth.

A competitor is a module with

    VARIANTS             name -> options of run
    missing()            why it cannot run here, in a few words, or None
    run(data, ...)       an Outcome

Conversions of X into a competitor's own structures are kept in ``data.prepared`` and not timed.
"""
