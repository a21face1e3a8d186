package endtoend_test

import (
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"strconv"
)

// rows is how many orders a job's table has.
const rows = 20_000

// regions are those of the orders, sorted; the weights have their revenues differ.
var (
	regions  = []string{"east", "north", "south", "west"}
	weights  = []int{3, 1, 5, 2}
	products = []string{"Tea, green", "Coffee", `12" plate`, "Süßholz"}
)

// orders is a table of orders and what is to be found in it.
type orders struct {
	csv []byte
	// byRegion are the revenues in cents, in the order of regions.
	byRegion []int64
}

func makeOrders(seed uint64) orders {
	random := rand.New(rand.NewPCG(seed, 0))
	var lots []int // each region as often as it weighs
	for i, weight := range weights {
		for range weight {
			lots = append(lots, i)
		}
	}
	o := orders{byRegion: make([]int64, len(regions))}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"order", "region", "product", "quantity", "cents"}) // a bytes.Buffer takes everything
	for i := range rows {
		region, quantity, cents := lots[random.IntN(len(lots))], 1+random.IntN(9), 100+random.IntN(9900)
		o.byRegion[region] += int64(quantity) * int64(cents)
		_ = w.Write([]string{strconv.Itoa(i + 1), regions[region], products[random.IntN(len(products))], strconv.Itoa(quantity), strconv.Itoa(cents)})
	}
	w.Flush()
	o.csv = out.Bytes()
	return o
}

func (o orders) total() int64 {
	var sum int64
	for _, cents := range o.byRegion {
		sum += cents
	}
	return sum
}

// best is the index of the region with the most revenue.
func (o orders) best() int {
	best := 0
	for i, cents := range o.byRegion {
		if cents > o.byRegion[best] {
			best = i
		}
	}
	return best
}
