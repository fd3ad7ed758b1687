import Admin
import Cluster
import FoundationEssentials
import Ground
import HTTPRules
import NIOCore
import Telemetry

/// A request that waits until its purge is confirmed as far as requested.
///
/// Confined to the event loop of its handler.
final class PendingPurge {
    /// The record of the purge.
    let name: RecordID
    /// Timer that ends the wait with the state reached by then.
    var timer: Scheduled<Void>?
    /// Token to cancel the wait; `nil` if the purge was confirmed at once, or the wait is over.
    var ticket: PurgeCoordinator.Waiters.Token?
    private let purges: PurgeCoordinator

    /// Creates a wait for the record `name`; timer and ticket are set later.
    init(_ name: RecordID, at purges: PurgeCoordinator) {
        self.name = name
        self.purges = purges
    }

    deinit {
        timer?.cancel()
        if let ticket { purges.cancelWait(ticket) }
    }
}

extension RequestHandler {
    /// Issues the purge that the JSON in `body` and the query describe.
    func issuePurge(_ query: AdminQuery, _ body: [UInt8]) {
        do throws(PurgeError) {
            let options = try PurgeOptions(query)
            let request = try Self.read(body)
            let (wait, timeout) = try options.resolved(with: request)
            let targets = request.targets.expanded(settings.sites)
            try purge(targets, isSoft: request.isSoft, id: request.id, wait, timeout)
        } catch {
            sendProblem(Problem(error.problem))
        }
    }

    /// Sends the receipt with this ID.
    func sendReceipt(_ text: String) {
        guard let name = ReceiptID(text[...]) else {
            return sendProblem(Problem(PurgeError.invalidReceiptID.problem))
        }
        sendReceipt(
            of: RecordID(
                stream: ProcessID(high: name.high, low: name.low), number: name.number))
    }

    /// Sends the receipt of the purge with the client's `id`, or without one the receipts of the
    /// last purges.
    func sendPurges(_ query: AdminQuery) {
        if let id = query["id"] {
            guard let name = context.purges.record(withID: Array(id.utf8)) else {
                return sendProblem(Problem(PurgeError.unknownReceipt.problem))
            }
            return sendReceipt(of: name)
        }
        let receipts = context.purges.recentPurges(Int(query.number("limit") ?? 20))
        send(
            DocumentList(receipts.compactMap { ReceiptDocument($0, at: context.node) }).json)
    }

    /// Decodes a purge request.
    ///
    /// - Throws: a `PurgeError` if `body` is too large or malformed.
    private static func read(_ body: [UInt8]) throws(PurgeError) -> PurgeRequest {
        guard body.count <= PurgeRequest.bodyBytesMax else { throw .bodyTooLarge }
        do {
            return try JSONDecoder().decode(PurgeRequest.self, from: Data(body))
        } catch {
            throw PurgeError(decodingError: error)
        }
    }

    /// Issues a purge and sends its receipt.
    ///
    /// - Parameters:
    ///   - targets: what to purge; at most `Invalidation.targetsMax` targets.
    ///   - isSoft: true for a soft purge, which makes responses stale; false for a hard one.
    ///   - id: the client's own ID, which makes the request idempotent; `nil` if it gives none.
    ///   - wait: the confirmation to wait for.
    ///   - timeout: time limit of that wait.
    /// - Throws: a `PurgeError` for too many targets, a record that is too large, or a
    ///   conflicting `id`.
    func purge(
        _ targets: [PurgeTarget], isSoft: Bool, id: [UInt8]?, _ wait: PurgeAcknowledgement,
        _ timeout: Interval
    ) throws(PurgeError) {
        guard targets.count <= Invalidation.targetsMax else { throw .tooManyNames(targets.count) }
        guard let name = try issue(Purge(isSoft ? .soft : .hard, targets), id: id) else {
            return sendProblem(.overloaded(.invalidations))
        }
        respond(after: wait, for: name, within: timeout)
    }

    /// Issues `purge`; returns `nil`, without any effect, if too many records wait for the disk.
    private func issue(_ purge: Purge, id: [UInt8]?) throws(PurgeError) -> RecordID? {
        let issuance: IssueOutcome
        do throws(InvalidationFault) {
            issuance = try context.purges.issue(purge, id: id)
        } catch {
            throw .recordTooLarge(bytesMax: Invalidation.contentBytesMax)
        }
        switch issuance {
        case .issued(let name):
            context.counters.add(purge.mode == .hard ? .purgesHard : .purgesSoft)
            return name
        case .duplicate(let name): return name
        case .conflict: throw .idConflict
        case .busy: return nil
        }
    }

    /// Sends the receipt at once, or after `wait` is satisfied or `timeout` has passed.
    private func respond(
        after wait: PurgeAcknowledgement, for name: RecordID, within timeout: Interval
    ) {
        guard wait != .none, timeout > .zero else { return sendReceipt(of: name, isIssue: true) }
        let waiting = PendingPurge(name, at: context.purges)
        pendingPurge = waiting
        isResponding = true
        deadline = .distantFuture
        let time = TimeAmount.nanoseconds(timeout.nanoseconds)
        waiting.timer = context.loop.assumeIsolated().scheduleTask(in: time) {
            [weak self, weak waiting] in
            if let waiting { self?.purgeWaitEnded(waiting) }
        }
        // Accessed only on the loop, though the callback may run on any thread.
        nonisolated(unsafe) weak let (handler, waits) = (self, waiting)
        waiting.ticket = context.purges.whenConfirmed(name, byAll: wait == .all) {
            [loop = context.loop] in
            loop.execute {
                guard let waits = unsafe waits else { return }
                waits.ticket = nil
                unsafe handler?.purgeWaitEnded(waits)
            }
        }
    }

    /// Sends the receipt at the end of a wait.
    private func purgeWaitEnded(_ waiting: PendingPurge) {
        guard pendingPurge === waiting else { return }
        pendingPurge = nil
        sendReceipt(of: waiting.name, isIssue: true)
        writer?.flush()
        resumeRequests()
    }

    /// Sends the receipt as it is now; `isIssue` marks the response to the request that issued the
    /// purge.
    private func sendReceipt(of name: RecordID, isIssue: Bool = false) {
        guard let receipt = context.purges.receipt(of: name),
            let document = ReceiptDocument(receipt, at: context.node)
        else { return sendProblem(Problem(PurgeError.unknownReceipt.problem)) }
        // The Location path exists only on the admin port.
        let place = AdminOperation.operation(.issuePurge).path
        let fields = isIssue && plane == .admin ? "Location: \(place)/\(document.receipt)\r\n" : ""
        send(document.json, status: isIssue ? document.issueStatusCode : 200, fields: fields)
    }
}

extension NodeCore {
    /// Returns the node that issued a record, or `nil` if its process is no longer known here.
    fileprivate func issuer(of name: RecordID) -> NodeID? {
        if name.stream == purges.process { return purges.id }
        return hub?.view.records.first { $0.member.process == name.stream }?.member.id
    }
}

extension ReceiptDocument {
    /// Creates the document of a receipt as seen by `node`; returns `nil` if the record is not a
    /// purge.
    init?(_ receipt: Receipt, at node: NodeCore) {
        let invalidation = receipt.record.invalidation
        guard let purge = invalidation.purge else { return nil }
        let (now, name) = (SystemClock.now(), receipt.record.id)
        self.init()
        self.receipt =
            "\(ReceiptID(high: name.stream.high, low: name.stream.low, number: name.number))"
        id = String(decoding: invalidation.clientID, as: UTF8.self)
        mode = purge.mode == .soft ? "soft" : "hard"
        issuer = node.issuer(of: name).map { "\($0)" }
        observer = "\(node.purges.id)"
        ageMilliseconds = (now - receipt.heldSince).milliseconds
        majorityMilliseconds = receipt.majorityAt.map { ($0 - receipt.heldSince).milliseconds }
        millisecondsUntilBounded = receipt.boundedAt.map { max(.zero, $0 - now).milliseconds }
        areMembersKnown = receipt.isMembershipComplete
        members = receipt.confirmations.map { line in
            let node = "\(line.node)"
            return switch line.status {
            case .confirmed(let elapsed):
                Member(confirmed: node, elapsedMilliseconds: elapsed.milliseconds)
            case .pending: Member(pending: node)
            case .unreachable(let since):
                Member(unreachable: node, sinceMillisecondsAgo: (now - since).milliseconds)
            }
        }
        targets = purge.targets.map(Target.init)
    }
}
