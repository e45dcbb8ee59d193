"""The event loop of a node: tasks, deadlines, time slices, jobs on threads, and the loop's monitor."""
