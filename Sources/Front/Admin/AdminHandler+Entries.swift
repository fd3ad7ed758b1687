import Admin
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Telemetry

/// Stored entries, for operators; work that blocks runs on another thread.
extension AdminHandler {
    /// Sends the most requested entries in memory, at most `limit`, by the samples of all loops.
    func sendHotEntries(_ limit: Int) {
        let node = context.node
        respondLater(accessCounts().map { node.hotEntries($0, limit: limit) }) {
            handler, document in
            handler.send(document.json)
        }
    }

    /// Returns the accesses of the most requested entries in memory by the hash of their key, as
    /// the samples of all loops estimate them.
    private func accessCounts() -> EventLoopFuture<[UInt64: UInt64]> {
        let samples = context.node.contexts.map { context in
            context.loop.submit { context.uses.hot.counters }
        }
        return EventLoopFuture.whenAllSucceed(samples, on: context.loop).map { samples in
            var counts: [UInt64: UInt64] = [:]
            for counter in samples.joined() {
                counts[counter.key, default: 0] += counter.count - counter.error
            }
            return counts
        }
    }

    /// Sends the stored variants of the URL `url`, or a 404 that names its owners.
    func sendEntry(_ url: String) {
        let look = EntryInspection(node: context.node, settings: settings)
        let loop = context.loop
        let found = accessCounts().flatMap { counts in
            NIOThreadPool.singleton.runIfActive(eventLoop: loop) {
                look.document(of: url, accesses: counts)
            }
        }
        respondLater(found) { handler, found in
            guard found.isHeld else {
                return handler.response.sendProblem(.entryUnknown(found.document))
            }
            handler.send(found.document.json)
        }
    }

    /// Sends the support snapshot, as far as `role` may see it.
    func sendSupport(for role: AdminRole) {
        let node = context.node
        respondLater(runOnThread { SupportDocument(of: node, for: role) }) { handler, document in
            handler.send(
                document.json,
                fields: "Content-Disposition: attachment; filename=\"nuthatch-support.json\"\r\n")
        }
    }

    /// Sends the body of the first stored response to `url` that matches `key` and `variant`; `nil`
    /// matches any.
    func sendEntryBody(_ url: String, key: String?, variant: String?) {
        let look = EntryInspection(node: context.node, settings: settings)
        let found = runOnThread {
            look.body(of: url, key: key.map { Array($0.utf8) }, variant: variant)
        }
        respondLater(found) { handler, body in
            guard let body else { return handler.response.sendProblem(.entryBodyUnknown) }
            handler.send(body)
        }
    }

    /// Sends a stored body under a policy that keeps browsers from running it.
    private func send(_ body: EntryInspection.Body) {
        // Stored content is untrusted: the policy stops a browser from running it in this origin.
        response.sendText(
            status: 200, contentType: body.contentType, body.bytes,
            fields: "Cache-Control: no-store\r\n"
                + "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                + "sandbox\r\n" + body.contentCodings.map { "Content-Encoding: \($0)\r\n" }.joined()
        )
    }

    // MARK: Deferred responses

    /// Runs `work`, which may block, on the shared thread pool.
    func runOnThread<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value
    ) -> EventLoopFuture<Value> {
        NIOThreadPool.singleton.runIfActive(eventLoop: context.loop, work)
    }

    /// Sends a response when `future` completes; until then the connection processes no further
    /// request.
    ///
    /// - Parameters:
    ///   - future: its failure is reported as `nodeStopping`.
    ///   - respond: sends the response, on the loop.
    func respondLater<Value: Sendable>(
        _ future: EventLoopFuture<Value>,
        _ respond: @escaping @Sendable (AdminHandler, Value) -> Void
    ) {
        response.wait(until: .distantFuture)
        // Accessed only on the loop.
        nonisolated(unsafe) weak let handler = self
        future.whenComplete { result in
            guard let handler = unsafe handler, handler.response.writer != nil else { return }
            switch result {
            case .success(let value): respond(handler, value)
            case .failure: handler.response.sendProblem(.nodeStopping)
            }
            handler.response.writer?.flush()
            handler.response.resumeRequests()
        }
    }
}
