import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Writes lines to a descriptor from a thread of its own, so that a reader who does not keep up
/// slows nothing down: what does not fit into the queue is dropped.
final class LineWriter: Sendable {
    private let descriptor: CInt
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let queued = Atomic<Int>(0)

    /// Buffers that wait to be written.
    private static let queuedMax = 64
    /// How long the end waits for a reader.
    private static let flushTimeout = TimeAmount.seconds(2)

    /// A writer to `descriptor`, which stays open.
    init(to descriptor: CInt) {
        self.descriptor = descriptor
        thread.start()
    }

    /// Writes `buffer`, or calls `dropped`, perhaps later and on another thread.
    func write(_ buffer: ByteBuffer, dropped: @escaping @Sendable () -> Void) {
        guard queued.add(1, ordering: .relaxed).newValue <= Self.queuedMax else {
            queued.subtract(1, ordering: .relaxed)
            return dropped()
        }
        thread.submit { [self] state in
            defer { queued.subtract(1, ordering: .relaxed) }
            guard case .active = state, writeAll(buffer) else { return dropped() }
        }
    }

    /// Returns when everything handed over has been written, or has waited too long for a reader.
    ///
    /// Nothing may be handed over afterwards. The wait is timed on `loop`.
    func finish(on loop: any EventLoop) async {
        let promise = loop.makePromise(of: Void.self)
        let limit = loop.scheduleTask(in: Self.flushTimeout) { promise.succeed() }
        thread.submit { _ in promise.succeed() }
        try? await promise.futureResult.get()
        limit.cancel()
    }

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
