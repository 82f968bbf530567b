"""Sparse Jacobians and Hessians: which elements depend on which, colours, compressed derivatives, and CSR of these.

    functions      what users call
    pattern        marks of a few passes -> the pattern of a Jacobian
    compression    a pattern -> colours, and where each entry is read in compressed derivatives
    colouring      the greedy colourings, as loops over CSR
"""
