import Glibc
package import NIOCore
import NIOPosix
import Synchronization

/// Writer of lines to a descriptor on its own thread, so that a slow reader delays nothing; a
/// buffer of lines that exceeds the queue is dropped.
package final class LineWriter: Sendable {
    private let descriptor: CInt
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let queued = Atomic<Int>(0)

    /// The largest number of buffers in the queue.
    private static let queuedMax = 64
    /// Maximum time that ``finish(on:)`` waits for a reader.
    private static let flushTimeout = TimeAmount.seconds(2)

    /// Creates a writer to `descriptor`, which stays open.
    package init(to descriptor: CInt) {
        self.descriptor = descriptor
        thread.start()
    }

    /// Queues `buffer`; calls `dropped`, possibly later and on another thread, if it is not
    /// written.
    package func write(_ buffer: ByteBuffer, dropped: @escaping @Sendable () -> Void) {
        guard queued.add(1, ordering: .relaxed).newValue <= Self.queuedMax else {
            queued.subtract(1, ordering: .relaxed)
            return dropped()
        }
        thread.submit { [self] state in
            defer { queued.subtract(1, ordering: .relaxed) }
            guard case .active = state, writeAll(buffer) else { return dropped() }
        }
    }

    /// Returns when all queued buffers are written or dropped, or after two seconds.
    ///
    /// ``write(_:dropped:)`` must not be called afterwards. The timer runs on `loop`.
    package func finish(on loop: any EventLoop) async {
        let promise = loop.makePromise(of: Void.self)
        let limit = loop.scheduleTask(in: Self.flushTimeout) { promise.succeed() }
        thread.submit { _ in promise.succeed() }
        try? await promise.futureResult.get()
        limit.cancel()
    }

    /// Writes all of a buffer; returns false if that fails.
    private func writeAll(_ buffer: ByteBuffer) -> Bool {
        unsafe buffer.withUnsafeReadableBytes { bytes in
            var written = 0
            while written < bytes.count, let base = bytes.baseAddress {
                let count = unsafe Glibc.write(
                    descriptor, base + written, bytes.count - written)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { return false }
                written += count
            }
            return true
        }
    }
}
