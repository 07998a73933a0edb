"""The Authorization API 1.0 of OpenID AuthZEN, for hosts that are not written in Python (extra `gateway`).

In: a resolver, tokens. Out: `application`, which answers evaluations, searches and metadata. It decides, and charges nothing.
"""

from zcpolicy.hosts.authzen.http import application as application
