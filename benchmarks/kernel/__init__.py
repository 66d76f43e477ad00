"""Kernels: the same rows, ranks, C and gamma to every competitor, the time of the fit alone, and what the answer is worth.

A competitor is a module with

    VARIANTS             name -> options of run
    missing()            why it cannot run here, in a few words, or None
    run(data, ...)       an Outcome
"""
