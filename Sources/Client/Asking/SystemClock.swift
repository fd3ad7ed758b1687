import Glibc
import Ground

/// The boot clock of this machine.
enum BootClock {
    /// The time now, suspended time included.
    static func now() -> Instant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Blocks the thread for `interval`.
    static func sleep(_ interval: Interval) {
        let until = now() + interval
        while now() < until {
            _ = poll(nil, 0, CInt(clamping: (until - now()).milliseconds + 1))
        }
    }
}
