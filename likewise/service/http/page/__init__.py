"""The page at `/`: a search over the served indexes in a browser, of hand-written files without a build step."""
