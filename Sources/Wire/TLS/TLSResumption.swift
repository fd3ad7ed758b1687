import COpenSSL

/// What lets a client resume a session: a ticket of the server's with its keys.
///
/// It belongs to the host and to the context that it was made with: what was verified then is not
/// verified again, so it is of use nowhere else.
package struct TLSResumption: Sendable {
    let host: TLSServerName
    let context: TLSClientContext
    let ticket: Ticket

    /// An `SSL_SESSION`, freed with this object and not changed by those who read it.
    @safe
    final class Ticket: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes `pointer` over.
        init(owning pointer: OpaquePointer) {
            unsafe self.pointer = unsafe pointer
        }

        deinit {
            unsafe SSL_SESSION_free(pointer)
        }
    }
}
