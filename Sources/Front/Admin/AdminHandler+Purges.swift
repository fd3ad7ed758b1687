import Admin
import Cluster
import FoundationEssentials
import Ground
import HTTPRules
import Peering

/// Purges, for operators.
extension AdminHandler {
    /// Issues the purge that the JSON in `body` and the query describe, and responds once it is
    /// confirmed as requested.
    func issuePurge(_ query: AdminQuery, _ body: [UInt8]) {
        do throws(PurgeError) {
            let options = try PurgeOptions(query)
            let request = try Self.read(body)
            let (wait, timeout) = try options.resolved(with: request)
            let targets = request.targets.expanded(settings.sites)
            pendingPurge = try PendingPurge.issue(
                targets, isSoft: request.isSoft, id: request.id, wait, timeout, to: response)
        } catch {
            response.sendProblem(Problem(error.problem))
        }
    }

    /// Sends the receipt with this ID, or the problem of an invalid or unknown one.
    func sendReceipt(_ text: String) {
        guard let name = ReceiptID(text[...]) else {
            return response.sendProblem(Problem(PurgeError.invalidReceiptID.problem))
        }
        response.sendReceipt(
            of: RecordID(
                stream: ProcessID(high: name.high, low: name.low), number: name.number))
    }

    /// Sends the receipt of the purge with the client's `id`, or without one the receipts of the
    /// last purges.
    func sendPurges(_ query: AdminQuery) {
        if let id = query["id"] {
            guard let name = context.purges.record(withID: Array(id.utf8)) else {
                return response.sendProblem(Problem(PurgeError.unknownReceipt.problem))
            }
            return response.sendReceipt(of: name)
        }
        let receipts = context.purges.recentPurges(Int(query.number("limit") ?? 20))
        send(
            DocumentList(receipts.compactMap { ReceiptDocument($0, at: context.node) }).json)
    }

    /// Decodes a purge request; throws a `PurgeError` if `body` is too large or malformed.
    private static func read(_ body: [UInt8]) throws(PurgeError) -> PurgeRequest {
        guard body.count <= PurgeRequest.bodyBytesMax else { throw .bodyTooLarge }
        do {
            return try JSONDecoder().decode(PurgeRequest.self, from: Data(body))
        } catch {
            throw PurgeError(decodingError: error)
        }
    }
}
