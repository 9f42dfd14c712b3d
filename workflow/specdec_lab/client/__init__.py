"""The measuring client: streams one request per prompt under a given load and returns one raw row for each (M22).

`Client(Endpoint(...)).measure(prompts, load)` is the whole front; the modules behind it, from the socket up:
`connection` stamps and stores, `exchange` is one request's record, `framing` (HTTP) and `sse` take the record apart,
`chunk` and `stream` say what it means, `load` offers the requests, `proof` says whether the client was the bottleneck.
"""

from .measure import Client, Measured
from .request import Endpoint

__all__ = ["Client", "Endpoint", "Measured"]
