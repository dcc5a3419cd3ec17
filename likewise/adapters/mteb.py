"""likewise in mteb, which must be installed."""

from search.adapters.mteb import LikewiseSearch as LikewiseSearch
