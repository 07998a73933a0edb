"""The tools of one execution: what a host has, cut down to what its policy lets this agent see, find and run."""
