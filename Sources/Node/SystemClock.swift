import Glibc
package import Ground
import NIOCore

/// The clocks of this machine; all of the node's time comes from here.
package enum SystemClock {
    /// Returns the time of the boot clock, suspended time included.
    @inline(__always)
    static func now() -> Instant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Returns the wall clock in milliseconds since 1970.
    static func wallMilliseconds() -> Int64 {
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

/// Descriptions of connection and socket errors for people.
enum ErrorDescription {
    /// Returns the description of an error, the system's own for a system error.
    static func text(_ error: any Error) -> String {
        switch error {
        case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "no connection in time"
        default: "\(error)"
        }
    }
}
