import Admin
import Cluster
import FoundationEssentials
import Ground
import HTTPRules
import NIOCore
import Telemetry

/// A request that waits until its purge has come as far as it wants to know.
///
/// Confined to the door's loop.
final class PendingPurge {
    let name: RecordID
    /// Ends it, whatever is known then.
    var timer: Scheduled<Void>?
    /// Nil if it was known at once.
    var ticket: PurgeCoordinator.Waiters.Token?
    private let purges: PurgeCoordinator

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
    /// Purges what a request on the admin port names.
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

    /// Answers with the receipt of this name.
    func sendReceipt(_ text: String) {
        guard let name = ReceiptID(text[...]) else {
            return sendProblem(Problem(PurgeError.invalidReceiptID.problem))
        }
        sendReceipt(
            of: RecordID(
                stream: ProcessID(high: name.high, low: name.low), number: name.number))
    }

    /// Answers with the receipt of a client's id, or with those of the last purges.
    func sendPurges(_ query: AdminQuery) {
        if let id = query["id"] {
            guard let name = context.purges.record(withID: Array(id.utf8)) else {
                return sendProblem(Problem(PurgeError.unknownReceipt.problem))
            }
            return sendReceipt(of: name)
        }
        let receipts = context.purges.recentPurges(Int(query.number("limit") ?? 20))
        send(
            ReceiptDocument.json(
                receipts.compactMap { ReceiptDocument($0, at: context.node) }))
    }

    private static func read(_ body: [UInt8]) throws(PurgeError) -> PurgeRequest {
        guard body.count <= PurgeRequest.bodyBytesMax else { throw .bodyTooLarge }
        do {
            return try JSONDecoder().decode(PurgeRequest.self, from: Data(body))
        } catch {
            throw PurgeError(decodingError: error)
        }
    }

    /// Purges, and answers with the receipt.
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

    /// Nil if too much waits for the disk; nothing was purged then.
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
        // Used on the loop alone, though it is told on any thread.
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

    private func purgeWaitEnded(_ waiting: PendingPurge) {
        guard pendingPurge === waiting else { return }
        pendingPurge = nil
        sendReceipt(of: waiting.name, isIssue: true)
        writer?.flush()
        resumeRequests()
    }

    /// Answers with the receipt as it is now; `isIssue` to who has issued it.
    private func sendReceipt(of name: RecordID, isIssue: Bool = false) {
        guard let receipt = context.purges.receipt(of: name),
            let document = ReceiptDocument(receipt, at: context.node)
        else { return sendProblem(Problem(PurgeError.unknownReceipt.problem)) }
        // Clients of the data port would look for it there.
        let place = AdminOperation.operation(.issuePurge).path
        let fields = isIssue && plane == .admin ? "Location: \(place)/\(document.name)\r\n" : ""
        send(document.json, status: isIssue ? document.issueStatusCode : 200, fields: fields)
    }
}

extension NodeCore {
    /// The node that has issued a record; nil if its process is not known here any more.
    fileprivate func issuer(of name: RecordID) -> NodeID? {
        if name.stream == purges.process { return purges.id }
        return hub?.view.records.first { $0.member.process == name.stream }?.member.id
    }
}

extension ReceiptDocument {
    /// As `node` sees it; nil if it is of no purge.
    init?(_ receipt: Receipt, at node: NodeCore) {
        let invalidation = receipt.record.invalidation
        guard let purge = invalidation.purge else { return nil }
        let (now, name) = (SystemClock.now(), receipt.record.id)
        self.init(
            ReceiptID(high: name.stream.high, low: name.stream.low, number: name.number),
            id: invalidation.clientID, isSoft: purge.mode == .soft,
            targets: purge.targets,
            issuedBy: node.issuer(of: name).map { "\($0)" },
            seenBy: "\(node.purges.id)", heldMilliseconds: (now - receipt.heldSince).milliseconds,
            majorityMilliseconds: receipt.majorityAt.map {
                ($0 - receipt.heldSince).milliseconds
            },
            boundedInMilliseconds: receipt.boundedAt.map { max(.zero, $0 - now).milliseconds },
            members: receipt.confirmations.map { line in
                let standing: ReceiptDocument.ConfirmationState =
                    switch line.status {
                    case .confirmed(let elapsed):
                        .confirmed(elapsedMilliseconds: elapsed.milliseconds)
                    case .pending: .pending
                    case .unreachable(let since):
                        .unreachable(sinceMillisecondsAgo: (now - since).milliseconds)
                    }
                return ReceiptDocument.Member(node: "\(line.node)", standing)
            }, areMembersKnown: receipt.isMembershipComplete)
    }
}
