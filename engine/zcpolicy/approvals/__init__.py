"""Approvals (SPEC 9): what kind of yes a decision wants, who is asked, and what an answer is worth."""
