import COpenSSL

/// The keys that all sessions of a context use at the time, on whatever thread they run.
///
/// The lock is OpenSSL's; it is held for the copy of one reference.
@safe
final class SharedTicketKeys: @unchecked Sendable {
    private let lock: UnsafeMutableRawPointer
    private var keys: TicketKeys?

    init() throws(TLSSetupError) {
        guard let made = unsafe CRYPTO_THREAD_lock_new() else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        unsafe lock = made
    }

    deinit {
        unsafe CRYPTO_THREAD_lock_free(lock)
    }

    var current: TicketKeys? {
        get {
            let isLocked = unsafe CRYPTO_THREAD_read_lock(lock)
            precondition(isLocked == 1)
            defer { unsafe CRYPTO_THREAD_unlock(lock) }
            return keys
        }
        set {
            let isLocked = unsafe CRYPTO_THREAD_write_lock(lock)
            precondition(isLocked == 1)
            defer { unsafe CRYPTO_THREAD_unlock(lock) }
            keys = newValue
        }
    }
}
