import Glibc
import Ground
import NIOCore

/// Descriptions of connection and socket errors for people.
package enum ErrorDescription {
    /// Returns the description of an error, the system's own for a system error.
    package static func text(_ error: any Error) -> String {
        switch error {
        case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
        case ChannelError.connectTimeout: "timed out"
        default: "\(error)"
        }
    }
}

/// Failure to open a port.
///
/// Nothing was changed; a retry helps only if the cause is removed.
package struct ListenError: Error, CustomStringConvertible {
    /// The address that could not be bound.
    let address: String
    /// Description of the system error.
    let reason: String

    /// Creates an error from its parts.
    package init(address: String, reason: String) {
        self.address = address
        self.reason = reason
    }

    /// The address and the reason, for the operator.
    package var description: String { "cannot listen on \(address): \(reason)" }
}
