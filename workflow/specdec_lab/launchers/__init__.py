"""How a server is started and surely stopped: docker, process, attach."""
