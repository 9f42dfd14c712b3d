"""The server's own counters: scrape, change over a window, acceptance (M4)."""
