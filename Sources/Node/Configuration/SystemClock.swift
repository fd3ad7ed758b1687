import Glibc
import Ground
import NIOCore

/// Reads this machine's clocks; the one place of the node that does.
enum SystemClock {
    /// The boot clock, suspended time included.
    @inline(__always)
    static func now() -> Instant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The wall clock in milliseconds since 1970.
    static func wallMilliseconds() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The wall clock, which may be set back.
    static func wallTime() -> WallTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: Int64(time.tv_sec))
    }
}

/// Errors of connections and sockets in words for people.
enum ErrorDescription {
    /// What the system calls it, where it is an error of the system's.
    static func text(_ error: any Error) -> String {
        switch error {
        case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "no connection in time"
        default: "\(error)"
        }
    }
}
