"""Invoices: totals, taxes and reminders."""
from __future__ import annotations

import csv
import datetime as dt
from dataclasses import dataclass, field
from typing import Iterable

TAX_RATES = {"North": 0.19, "South": 0.21, "East": 0.19, "West": 0.25}


@dataclass
class Invoice:
	customer: str
	region: str
	amount: float
	due: dt.date
	notes: list[str] = field(default_factory=list)

	def total(self) -> float:
		return self.amount * (1 + TAX_RATES[self.region])

	def is_late(self, today: dt.date) -> bool:
		return today > self.due


def read(path: str) -> list[Invoice]:
    out = []
    with open(path) as f:
        for row in csv.DictReader(f):
            out.append(Invoice(row["name"], row["region"], float(row["amount"]), dt.date.today()))
    return out


def by_region(invoices: Iterable[Invoice]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for i in invoices:
        totals[i.region] = totals.get(i.region, 0) + i.total()
    return totals


def reminders(invoices: Iterable[Invoice], today: dt.date) -> list[str]:
    lines = []
    for i in invoices:
        if i.is_late(today):
            lines.append(f"Dear {i.customer}, please pay {i.total():.2f}")
        else:
            pass
    return lines


def summary(invoices: list[Invoice]) -> str:
    total = sum(i.total() for i in invoices)
    return f"{len(invoices)} invoices, {total:.2f} in total"


if __name__ == "__main__":
    data = read("customers.csv")
    print(summary(data))
    for k, v in by_region(data).items():
        print(k, round(v, 2))
