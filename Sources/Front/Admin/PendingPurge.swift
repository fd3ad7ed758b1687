import Admin
import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Telemetry

/// A request that waits until its purge is confirmed as far as requested.
///
/// Confined to the event loop of its handler, which drops it when the connection ends.
final class PendingPurge {
    private let response: ResponseSender
    /// The record of the purge; `nil` after the wait.
    private var name: RecordID?
    /// Timer that ends the wait with the state reached by then.
    private var timer: Scheduled<Void>?
    /// Token to cancel the wait for the confirmation; `nil` once the purge is confirmed or the wait
    /// is over.
    private var ticket: PurgeCoordinator.Waiters.Token?

    private var context: EventLoopContext { response.context }

    /// Issues a purge and sends its receipt, or waits before.
    ///
    /// - Parameters:
    ///   - targets: what to purge; at most `Invalidation.targetsMax` targets.
    ///   - isSoft: true for a soft purge, which makes responses stale; false for a hard one.
    ///   - id: the client's own ID, which makes the request idempotent; `nil` if it gives none.
    ///   - wait: the confirmation to wait for.
    ///   - timeout: time limit of that wait.
    ///   - response: sender of the response.
    /// - Returns: the wait, which ends with this object; `nil` if a response was sent.
    /// - Throws: a `PurgeError` for too many targets, a record that is too large, or a
    ///   conflicting `id`.
    static func issue(
        _ targets: [PurgeTarget], isSoft: Bool, id: [UInt8]?, _ wait: PurgeAcknowledgement,
        _ timeout: Interval, to response: ResponseSender
    ) throws(PurgeError) -> PendingPurge? {
        guard targets.count <= Invalidation.targetsMax else { throw .tooManyNames(targets.count) }
        let purge = Purge(isSoft ? .soft : .hard, targets)
        guard let name = try issue(purge, id: id, on: response.context) else {
            response.sendProblem(.overloaded(.invalidations))
            return nil
        }
        guard wait != .none, timeout > .zero else {
            response.sendReceipt(of: name, isIssue: true)
            return nil
        }
        return PendingPurge(name, byAll: wait == .all, within: timeout, response)
    }

    /// Issues `purge`, or finds the record issued with the same `id`; returns `nil`, without any
    /// effect, if too many records wait for the disk.
    ///
    /// Throws if the record is too large, or `id` was used for another purge.
    private static func issue(
        _ purge: Purge, id: [UInt8]?, on context: EventLoopContext
    ) throws(PurgeError) -> RecordID? {
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

    /// Creates a wait for the record `name`, which ends with its receipt.
    private init(
        _ name: RecordID, byAll: Bool, within timeout: Interval, _ response: ResponseSender
    ) {
        self.response = response
        self.name = name
        response.wait(until: .distantFuture)
        let time = TimeAmount.nanoseconds(timeout.nanoseconds)
        timer = context.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.waitEnded()
        }
        // Accessed only on the loop, though the callback may run on any thread.
        nonisolated(unsafe) weak let waiting = self
        ticket = context.purges.whenConfirmed(name, byAll: byAll) { [loop = context.loop] in
            loop.execute {
                guard let waiting = unsafe waiting else { return }
                waiting.ticket = nil
                waiting.waitEnded()
            }
        }
    }

    deinit {
        cancel()
    }

    /// Stops the timer and the wait for the confirmation.
    private func cancel() {
        timer?.cancel()
        if let ticket = ticket.take() { context.purges.cancelWait(ticket) }
    }

    /// Sends the receipt at the end of the wait, once.
    private func waitEnded() {
        guard let name = name.take() else { return }
        cancel()
        response.sendReceipt(of: name, isIssue: true)
        response.writer?.flush()
        response.resumeRequests()
    }
}

extension ResponseSender {
    /// Sends the receipt as it is now; `isIssue` marks the response to the request that issued the
    /// purge.
    func sendReceipt(of name: RecordID, isIssue: Bool = false) {
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
