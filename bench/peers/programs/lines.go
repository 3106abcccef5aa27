package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// answer is what a line of input is answered with. What does not apply is left out.
type answer struct {
	// Objects in the cache.
	Objects int `json:"objects,omitempty"`
	// Events that were delivered to all handlers together, or reconciles that were begun.
	Events int64 `json:"events,omitempty"`
	// Bytes of live objects, after a forced collection.
	Heap uint64 `json:"heap,omitempty"`
	// Nanoseconds of CPU time: of the process so far, or, where a line asks for a piece of work, of that.
	CPU int64 `json:"cpu"`
	// Nanoseconds that a piece of work took.
	Wall int64 `json:"wall,omitempty"`
	// Reconciles that were recorded: version of the object, and when it began, in nanoseconds since 1970.
	Starts [][2]uint64 `json:"starts,omitempty"`
}

func (a answer) print() {
	if a.CPU == 0 {
		a.CPU = cpu()
	}
	line, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// lines are those of the input.
type lines struct{ scanner *bufio.Scanner }

func input() lines { return lines{bufio.NewScanner(os.Stdin)} }

// next gives the word of a line and its number, if it has one; false at the end.
func (l lines) next() (word string, number uint64, more bool) {
	if !l.scanner.Scan() {
		return "", 0, false
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(l.scanner.Text()), " ")
	number, _ = strconv.ParseUint(rest, 10, 64)
	return word, number, true
}

// cpu tells the user and system time of the process in nanoseconds, as the kernel counts it.
func cpu() int64 {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &time); err != nil {
		panic(err)
	}
	return time.Nano()
}

// heap tells how many bytes are reachable. Twice, for what a finalizer held goes with the second collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
