package import Ground
package import NIOCore

/// Turns names into addresses; what it says is not trusted but judged by the address guard.
package protocol NameResolver: Sendable {
    /// The addresses of `host` in the order in which they should be tried; never empty on success.
    ///
    /// The future is on `loop` and fails with ``ResolveFailure``.
    func addresses(of host: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]>
}

/// Why a name was not turned into addresses.
package enum ResolveFailure: Error, Hashable, Sendable {
    /// The name does not exist, or has no address.
    case nameNotFound
    /// No answer; carries the reason. The next attempt may succeed.
    case failed(String)
}
