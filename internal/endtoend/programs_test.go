package endtoend_test

// makeReport is what the model has run on the orders: a workbook with every order and a sheet that sums them up, a chart
// without a margin whose bars are as high as the revenues, and one printed line.
const makeReport = `
import json, os, sys
import matplotlib.pyplot as plt
import pandas as pd
from openpyxl import Workbook
sys.path.insert(0, "skills/house-style")
from style import COLOUR

orders = pd.read_csv("inputs/files/orders 2025.csv")
orders["revenue"] = orders.quantity * orders.cents
by_region = orders.groupby("region").revenue.sum()
title = json.load(open("inputs/tool-results/1.json"))["output"]["title"]

book = Workbook(write_only=True)
summary = book.create_sheet(title)
summary.append(["region", "cents"])
for region, cents in by_region.items():
    summary.append([region, int(cents)])
summary.append(["total", int(by_region.sum())])
detail = book.create_sheet("Orders")
detail.append(["order", "revenue"])
for row in zip(orders.order.tolist(), orders.revenue.tolist()):
    detail.append(row)
book.save("workspace/report.xlsx")

figure = plt.figure(figsize=(6, 4), dpi=100)
axes = figure.add_axes([0, 0, 1, 1])
axes.axis("off")
axes.bar(range(len(by_region)), by_region.values, width=1, color=COLOUR, linewidth=0, antialiased=False)
axes.set_xlim(-0.5, len(by_region) - 0.5)
axes.set_ylim(0, by_region.max())
os.mkdir("workspace/charts")
figure.savefig("workspace/charts/revenue.png")

print(f"{len(orders)} orders, {by_region.sum()} cents, most in the {by_region.idxmax()}")
`

// readReport is what the second user's model has run on the workbook that was shared with him.
const readReport = `
from openpyxl import load_workbook
sheet = load_workbook(%q, read_only=True)[%q]
cells = {region: cents for region, cents in sheet.values}
print(cells["north"], cells["total"])
open("workspace/copy.txt", "w").write(str(cells["total"]))
`

// hashReport shows that a mounted artifact has its bytes.
const hashReport = `
import hashlib
print(hashlib.sha256(open(%q, "rb").read()).hexdigest())
`

// skillText and skillStyle are the files of the skill that the report is made with.
const (
	skillText  = "# House style\nCharts are in one colour: import it from style.py.\n"
	skillStyle = "COLOUR = \"#2a6f97\"\n"
)

// deck are the lines of the presentation as the model first writes it; slide is the line that is edited then.
var deck = []string{
	"<!doctype html>",
	`<html lang="en">`,
	`<head><meta charset="utf-8"><title>Orders 2025</title></head>`,
	"<body>",
	`<section id="s1"><h1>Orders 2025 – what was sold, and where</h1></section>`,
	`<section id="s2"><p>The total is not known yet.</p></section>`,
	`<section id="s3"><img src="charts/revenue.png" alt="Revenue by region"></section>`,
	"</body>",
	"</html>",
}

const slide = 6
