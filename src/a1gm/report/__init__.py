"""One self-contained page about a table and its fit."""

from __future__ import annotations

from a1gm.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
