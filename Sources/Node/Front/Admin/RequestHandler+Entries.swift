import Admin
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Telemetry

/// What the node holds, for operators; what has to be waited for is waited for elsewhere.
extension RequestHandler {
    func sendHotEntries(_ limit: Int) {
        let node = context.node
        let samples = node.contexts.map { context in context.loop.submit { context.hot.counters } }
        let all = EventLoopFuture.whenAllSucceed(samples, on: context.loop)
        respondLater(all.map { node.hotEntries($0.flatMap(\.self), limit: limit) }) {
            handler, document in
            handler.send(document.json)
        }
    }

    func sendEntry(_ url: String) {
        let look = EntryInspection(node: context.node, settings: settings)
        respondLater(runOnThread { look.document(of: url) }) { handler, found in
            guard found.isHeld else { return handler.sendProblem(.entryUnknown(found.document)) }
            handler.send(found.document.json)
        }
    }

    func sendSupport(for role: AdminRole) {
        let node = context.node
        respondLater(runOnThread { node.supportSnapshot(for: role) }) { handler, document in
            handler.send(
                document.json,
                fields: "Content-Disposition: attachment; filename=\"nuthatch-support.json\"\r\n")
        }
    }

    /// Sends the body of the first variant with this key and this name, where they are not nil.
    func sendEntryBody(_ url: String, key: String?, variant: String?) {
        let look = EntryInspection(node: context.node, settings: settings)
        let found = runOnThread {
            look.body(of: url, key: key.map { Array($0.utf8) }, variant: variant)
        }
        respondLater(found) { handler, body in
            guard let body else { return handler.sendProblem(.entryBodyUnknown) }
            handler.send(body)
        }
    }

    private func send(_ body: EntryInspection.Body) {
        // What is stored was made by others: no browser is to run it here.
        sendText(
            status: 200, contentType: body.contentType, body.bytes,
            fields: "Cache-Control: no-store\r\n"
                + "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                + "sandbox\r\n" + body.contentCodings.map { "Content-Encoding: \($0)\r\n" }.joined()
        )
    }

    // MARK: Later

    /// Does `work` where it may take its time.
    func runOnThread<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value
    ) -> EventLoopFuture<Value> {
        NIOThreadPool.singleton.runIfActive(eventLoop: context.loop, work)
    }

    /// Answers when `future` is there; until then no further request is looked at.
    func respondLater<Value: Sendable>(
        _ future: EventLoopFuture<Value>,
        _ response: @escaping @Sendable (RequestHandler, Value) -> Void
    ) {
        isResponding = true
        deadline = .distantFuture
        // Used on the loop alone.
        nonisolated(unsafe) weak let handler = self
        future.whenComplete { result in
            guard let handler = unsafe handler, handler.writer != nil else { return }
            switch result {
            case .success(let value): response(handler, value)
            case .failure: handler.sendProblem(.nodeStopping)
            }
            handler.writer?.flush()
            handler.resumeRequests()
        }
    }
}
