"""The HTTP server: routes, access control, media, and the studio behind them."""
