import Admin
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Telemetry

/// What the node holds, for operators; what has to be waited for is waited for elsewhere.
extension Door {
    func listHotEntries(_ limit: Int) {
        let node = hall.node
        let samples = node.halls.map { hall in hall.loop.submit { hall.hot.counters } }
        let all = EventLoopFuture.whenAllSucceed(samples, on: hall.loop)
        answerLater(all.map { node.hot($0.flatMap(\.self), limit: limit) }) { door, document in
            door.send(document.json)
        }
    }

    func showEntry(_ url: String) {
        let look = EntryLook(node: hall.node, settings: settings)
        answerLater(onThread { look.document(of: url) }) { door, found in
            guard found.isHeld else { return door.answerProblem(.entryUnknown(found.document)) }
            door.send(found.document.json)
        }
    }

    func sendSupport(for role: AdminRole) {
        let node = hall.node
        answerLater(onThread { node.support(for: role) }) { door, document in
            door.send(
                document.json,
                fields: "Content-Disposition: attachment; filename=\"nuthatch-support.json\"\r\n")
        }
    }

    /// Sends the body of the first variant with this key and this name, where they are not nil.
    func sendEntryBody(_ url: String, key: String?, variant: String?) {
        let look = EntryLook(node: hall.node, settings: settings)
        let found = onThread {
            look.body(of: url, key: key.map { Array($0.utf8) }, variant: variant)
        }
        answerLater(found) { door, body in
            guard let body else { return door.answerProblem(.entryBodyUnknown) }
            door.send(body)
        }
    }

    private func send(_ body: EntryLook.Body) {
        // What is stored was made by others: no browser is to run it here.
        sendText(
            status: 200, contentType: body.contentType, body.bytes,
            fields: "Cache-Control: no-store\r\n"
                + "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
                + "sandbox\r\n" + body.coding.map { "Content-Encoding: \($0)\r\n" }.joined())
    }

    // MARK: Later

    /// Does `work` where it may take its time.
    func onThread<Value: Sendable>(
        _ work: @escaping @Sendable () -> Value
    ) -> EventLoopFuture<Value> {
        NIOThreadPool.singleton.runIfActive(eventLoop: hall.loop, work)
    }

    /// Answers when `future` is there; until then no further request is looked at.
    func answerLater<Value: Sendable>(
        _ future: EventLoopFuture<Value>, _ answer: @escaping @Sendable (Door, Value) -> Void
    ) {
        isAnswering = true
        deadline = .distantFuture
        // Used on the loop alone.
        nonisolated(unsafe) weak let door = self
        future.whenComplete { result in
            guard let door = unsafe door, door.outlet != nil else { return }
            switch result {
            case .success(let value): answer(door, value)
            case .failure: door.answerProblem(.stopping)
            }
            door.outlet?.flush()
            door.goOn()
        }
    }
}
