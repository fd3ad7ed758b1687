import Glibc
import NIOCore

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
