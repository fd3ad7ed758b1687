import COpenSSL

/// The first cause of a failed call, as OpenSSL noted it for this thread.
struct OpenSSLError {
    private let code: UInt

    /// The oldest error of the thread's queue, nil if there is none; the queue is empty afterwards,
    /// so that nothing is taken for the fault of another session.
    static func popError() -> OpenSSLError? {
        let first = ERR_get_error()
        ERR_clear_error()
        return first == 0 ? nil : OpenSSLError(code: first)
    }

    /// OpenSSL's words for the oldest error; the queue is empty afterwards.
    static func popErrorText() -> String {
        popError()?.text ?? "OpenSSL names no reason"
    }

    /// One of `SSL_R_…` if TLS itself failed.
    var reason: CInt? {
        ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : nil
    }

    /// The number of the alert that the other side sent.
    var alert: UInt8? {
        guard let reason, reason >= SSL_AD_REASON_OFFSET else { return nil }
        return UInt8(exactly: reason - SSL_AD_REASON_OFFSET)
    }

    /// OpenSSL had no memory, or was used wrongly.
    var isInternal: Bool {
        guard Int(ERR_GET_REASON(code)) & Int(ERR_R_FATAL) == 0 else { return true }
        return reason == SSL_R_PROTOCOL_IS_SHUTDOWN
    }

    /// A text holds no (further) part in PEM.
    var isNoPEM: Bool {
        ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
    }

    var text: String {
        guard let text = unsafe ERR_reason_error_string(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}
