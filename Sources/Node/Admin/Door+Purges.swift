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
final class PurgeWaiting {
    let name: RecordName
    /// Ends it, whatever is known then.
    var timer: Scheduled<Void>?
    /// Nil if it was known at once.
    var ticket: InvalidationDesk.Waiters.Ticket?
    private let desk: InvalidationDesk

    init(_ name: RecordName, at desk: InvalidationDesk) {
        self.name = name
        self.desk = desk
    }

    deinit {
        timer?.cancel()
        if let ticket { desk.waitNoLonger(ticket) }
    }
}

extension Door {
    /// Purges what a request on the admin port names.
    func issuePurge(_ query: AdminQuery, _ body: [UInt8]) {
        do throws(PurgeFault) {
            let options = try PurgeOptions(query)
            let request = try Self.read(body)
            let (wait, timeout) = try options.settled(with: request)
            let targets = request.targets.targets(settings.sites)
            try purge(targets, isSoft: request.isSoft, id: request.id, wait, timeout)
        } catch {
            answerProblem(Problem(error.problem))
        }
    }

    /// Answers with the receipt of this name.
    func showReceipt(_ text: String) {
        guard let name = ReceiptName(text[...]) else {
            return answerProblem(Problem(PurgeFault.receiptName.problem))
        }
        sendReceipt(
            of: RecordName(
                stream: ProcessID(high: name.high, low: name.low), number: name.number))
    }

    /// Answers with the receipt of a client's id, or with those of the last purges.
    func listPurges(_ query: AdminQuery) {
        if let id = query["id"] {
            guard let name = hall.desk.record(withID: Array(id.utf8)) else {
                return answerProblem(Problem(PurgeFault.receiptUnknown.problem))
            }
            return sendReceipt(of: name)
        }
        let receipts = hall.desk.lastPurges(Int(query.number("limit") ?? 20))
        send(
            ReceiptDocument.json(
                receipts.compactMap { ReceiptDocument($0, at: hall.node) }))
    }

    private static func read(_ body: [UInt8]) throws(PurgeFault) -> PurgeRequest {
        guard body.count <= PurgeRequest.bodyBytesMax else { throw .bodyTooLarge }
        do {
            return try JSONDecoder().decode(PurgeRequest.self, from: Data(body))
        } catch {
            throw PurgeFault(reading: error)
        }
    }

    /// Purges, and answers with the receipt.
    func purge(
        _ targets: [PurgeTarget], isSoft: Bool, id: [UInt8]?, _ wait: PurgeWait,
        _ timeout: Interval
    ) throws(PurgeFault) {
        guard targets.count <= Invalidation.targetsMax else { throw .namesTooMany(targets.count) }
        guard let name = try issue(Purge(isSoft ? .soft : .hard, targets), id: id) else {
            return answerProblem(.overloaded(.invalidations))
        }
        answer(after: wait, for: name, within: timeout)
    }

    /// Nil if too much waits for the disk; nothing was purged then.
    private func issue(_ purge: Purge, id: [UInt8]?) throws(PurgeFault) -> RecordName? {
        let issuance: Issuance
        do throws(InvalidationFault) {
            issuance = try hall.desk.issue(purge, id: id)
        } catch {
            throw .recordTooLarge(bytesMax: Invalidation.contentBytesMax)
        }
        switch issuance {
        case .new(let name):
            hall.counters.add(purge.mode == .hard ? .purgesHard : .purgesSoft)
            return name
        case .repeated(let name): return name
        case .conflict: throw .idTaken
        case .busy: return nil
        }
    }

    private func answer(after wait: PurgeWait, for name: RecordName, within timeout: Interval) {
        guard wait != .none, timeout > .zero else { return sendReceipt(of: name, isIssue: true) }
        let waiting = PurgeWaiting(name, at: hall.desk)
        purgeWaiting = waiting
        isAnswering = true
        deadline = .distantFuture
        let time = TimeAmount.nanoseconds(timeout.nanoseconds)
        waiting.timer = hall.loop.assumeIsolated().scheduleTask(in: time) {
            [weak self, weak waiting] in
            if let waiting { self?.waited(waiting) }
        }
        // Used on the loop alone, though it is told on any thread.
        nonisolated(unsafe) weak let (door, waits) = (self, waiting)
        waiting.ticket = hall.desk.whenKnown(name, isForAll: wait == .all) { [loop = hall.loop] in
            loop.execute {
                guard let waits = unsafe waits else { return }
                waits.ticket = nil
                unsafe door?.waited(waits)
            }
        }
    }

    private func waited(_ waiting: PurgeWaiting) {
        guard purgeWaiting === waiting else { return }
        purgeWaiting = nil
        sendReceipt(of: waiting.name, isIssue: true)
        outlet?.flush()
        goOn()
    }

    /// Answers with the receipt as it is now; `isIssue` to who has issued it.
    private func sendReceipt(of name: RecordName, isIssue: Bool = false) {
        guard let receipt = hall.desk.receipt(of: name),
            let document = ReceiptDocument(receipt, at: hall.node)
        else { return answerProblem(Problem(PurgeFault.receiptUnknown.problem)) }
        // Clients of the data port would look for it there.
        let place = AdminOperation.row(.issuePurge).path
        let fields = isIssue && side == .admin ? "Location: \(place)/\(document.name)\r\n" : ""
        send(document.json, status: isIssue ? document.statusOfIssue : 200, fields: fields)
    }
}

extension NodeCore {
    /// The node that has issued a record; nil if its process is not known here any more.
    fileprivate func issuer(of name: RecordName) -> NodeID? {
        if name.stream == desk.process { return desk.id }
        return hub?.view.records.first { $0.member.process == name.stream }?.member.id
    }
}

extension ReceiptDocument {
    /// As `node` sees it; nil if it is of no purge.
    init?(_ receipt: Receipt, at node: NodeCore) {
        let invalidation = receipt.record.invalidation
        guard let purge = invalidation.purge else { return nil }
        let (now, name) = (SystemClock.now(), receipt.record.name)
        self.init(
            ReceiptName(high: name.stream.high, low: name.stream.low, number: name.number),
            id: invalidation.id, isSoft: purge.mode == .soft,
            targets: purge.targets,
            issuedBy: node.issuer(of: name).map { "\($0)" },
            seenBy: "\(node.desk.id)", heldMilliseconds: (now - receipt.heldSince).milliseconds,
            majorityMilliseconds: receipt.majorityAt.map {
                ($0 - receipt.heldSince).milliseconds
            },
            boundedInMilliseconds: receipt.boundedAt.map { max(.zero, $0 - now).milliseconds },
            members: receipt.lines.map { line in
                let standing: ReceiptDocument.Standing =
                    switch line.standing {
                    case .confirmed(let elapsed):
                        .confirmed(elapsedMilliseconds: elapsed.milliseconds)
                    case .pending: .pending
                    case .unreachable(let since):
                        .unreachable(sinceMillisecondsAgo: (now - since).milliseconds)
                    }
                return ReceiptDocument.Member(node: "\(line.node)", standing)
            }, areMembersKnown: receipt.isCompanyKnown)
    }
}
