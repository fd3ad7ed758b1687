import Glibc
package import Ground

/// The clocks of this machine; all of the node's time comes from here.
package enum SystemClock {
    /// Returns the time of the boot clock, suspended time included.
    @inline(__always)
    package static func now() -> Instant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Returns the microseconds of the monotonic clock (`CLOCK_MONOTONIC`), suspended time
    /// excluded, as service managers count them.
    package static func monotonicMicroseconds() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Returns the wall clock in milliseconds since 1970.
    package static func wallMilliseconds() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Returns the wall clock in seconds, which may be set back.
    package static func wallTime() -> WallTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: Int64(time.tv_sec))
    }
}
