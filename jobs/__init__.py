"""Jobs: measure what the store lacks and publish it. Here core and store meet."""
