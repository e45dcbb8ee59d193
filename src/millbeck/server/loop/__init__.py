"""What a node runs on the event loop: tasks, deadlines, time slices, jobs on threads, and the loop's monitor."""
