"""One file for each family of APIs. A handler authorises, calls a machine or a log, and shapes the reply."""
