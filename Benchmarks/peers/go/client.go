// The Go peer: net/http with its own transport, one goroutine for each connection.
//
// Called as PROGRAM WORKLOAD HOST PORT REQUESTS [CA_FILE]. The whole contract is in Benchmarks/README.md.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type workload struct {
	path        string
	bodyBytes   int64
	connections int
	isTLS       bool
	isPaced     bool
}

var workloads = map[string]workload{
	"serial-tiny":           {"/tiny", 13, 1, false, false},
	"concurrent-tiny":       {"/tiny", 13, 64, false, false},
	"concurrent-100k":       {"/100k", 100 << 10, 64, false, false},
	"download-1g":           {"/1g", 1 << 30, 1, false, false},
	"https-serial-tiny":     {"/tiny", 13, 1, true, false},
	"https-concurrent-tiny": {"/tiny", 13, 64, true, false},
	"https-download-1g":     {"/1g", 1 << 30, 1, true, false},
	"latency-tiny":          {"/tiny", 13, 64, false, true},
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(client *http.Client, url string, expected int64) {
	response, err := client.Get(url)
	check(err)
	received, err := io.Copy(io.Discard, response.Body)
	check(err)
	response.Body.Close()
	if response.StatusCode != 200 || received != expected {
		check(fmt.Errorf("status %d and %d bytes", response.StatusCode, received))
	}
}

func run(client *http.Client, url string, work workload, requests int64) {
	left := requests
	var group sync.WaitGroup
	for index := 0; index < work.connections; index++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for atomic.AddInt64(&left, -1) >= 0 {
				load(client, url, work.bodyBytes)
			}
		}()
	}
	group.Wait()
}

// Opens a timer of the system that expires at the rate. Go's own timers are exact to a millisecond.
func openTimer(rate int64) *os.File {
	const monotonic, nonBlocking = 1, 0x800
	descriptor, _, failure := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, nonBlocking, 0)
	if failure != 0 {
		check(failure)
	}
	period := syscall.NsecToTimespec(1_000_000_000 / rate)
	setting := [2]syscall.Timespec{period, period}
	_, _, failure = syscall.Syscall6(
		syscall.SYS_TIMERFD_SETTIME, descriptor, 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
	if failure != 0 {
		check(failure)
	}
	return os.NewFile(descriptor, "timer")
}

// Begins the requests at a fixed rate, each in a goroutine, and returns their latencies in nanoseconds.
func runPaced(client *http.Client, url string, work workload, requests int64, rate int64) []int64 {
	timer := openTimer(rate)
	defer timer.Close()
	latencies := make([]int64, requests)
	var group sync.WaitGroup
	start := time.Now()
	expired, expirations := int64(0), make([]byte, 8)
	for number := int64(0); number < requests; number++ {
		for expired <= number {
			_, err := timer.Read(expirations)
			check(err)
			expired += int64(binary.LittleEndian.Uint64(expirations))
		}
		due := time.Duration((number + 1) * (1_000_000_000 / rate))
		group.Add(1)
		go func(number int64) {
			defer group.Done()
			load(client, url, work.bodyBytes)
			latencies[number] = int64(time.Since(start) - due)
		}(number)
	}
	group.Wait()
	return latencies
}

func cpuMicroseconds() int64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1000
}

func peakRSSKiB() int64 {
	text, err := os.ReadFile("/proc/self/status")
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			peak, err := strconv.ParseInt(fields[1], 10, 64)
			check(err)
			return peak
		}
	}
	return 0
}

func main() {
	work, known := workloads[os.Args[1]]
	if !known {
		fmt.Println("{\"unsupported\":true}")
		return
	}
	requests, err := strconv.ParseInt(os.Args[4], 10, 64)
	check(err)
	transport := &http.Transport{
		MaxConnsPerHost: work.connections, MaxIdleConnsPerHost: work.connections, DisableCompression: true}
	scheme := "http"
	if work.isTLS {
		scheme = "https"
		certificates, err := os.ReadFile(os.Args[5])
		check(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(certificates)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	client := &http.Client{Transport: transport}
	url := fmt.Sprintf("%s://%s:%s%s", scheme, os.Args[2], os.Args[3], work.path)
	warmUp := requests / 10
	if warmUp > 1000 {
		warmUp = 1000
	}
	latencies := []int64{}
	measured := func(count int64) { run(client, url, work, count) }
	if work.isPaced {
		rate, err := strconv.ParseInt(os.Getenv("RATE"), 10, 64)
		check(err)
		measured = func(count int64) { latencies = runPaced(client, url, work, count, rate) }
	}
	measured(warmUp)
	cpu, start := cpuMicroseconds(), time.Now()
	measured(requests)
	wall := time.Since(start).Microseconds()
	fmt.Printf("{\"requests\":%d,\"cpu_us\":%d,\"wall_us\":%d,\"bytes\":%d,\"peak_rss_kib\":%d", requests,
		cpuMicroseconds()-cpu, wall, requests*work.bodyBytes, peakRSSKiB())
	if work.isPaced {
		sort.Slice(latencies, func(first, second int) bool { return latencies[first] < latencies[second] })
		for name, thousandths := range map[string]int64{"p50": 500, "p99": 990, "p999": 999} {
			fmt.Printf(",\"%s_us\":%d", name, latencies[(requests*thousandths-1)/1000]/1000)
		}
	}
	fmt.Println("}")
}
