"""Pictures: timelines, windows and curves as SVG and text, for reports, notebooks and terminals."""
