import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Synchronization

/// What operators have fetched before clients ask for it.
extension Door {
    func beginPrefetch(_ body: [UInt8], _ operation: AdminOperation) {
        let node = hall.node
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return answerProblem(.bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        guard !node.isStopping.load(ordering: .relaxed) else { return answerProblem(.stopping) }
        // Ten thousand URLs take longer to read than a loop may be held up.
        let read = onThread {
            Result { try JSONDecoder().decode(PrefetchRequest.self, from: Data(body)) }
        }
        answerLater(read) { door, result in
            switch result {
            case .success(let request): door.begin(request, operation)
            case .failure(let error): door.answerProblem(.body(BodyFault(reading: error)))
            }
        }
    }

    private func begin(_ request: PrefetchRequest, _ operation: AdminOperation) {
        let node = hall.node
        guard !node.isStopping.load(ordering: .relaxed) else { return answerProblem(.stopping) }
        do throws(PrefetchList.Refusal) {
            let document = try node.prefetcher.begin(request, on: node)
            send(
                document.json, status: 202,
                fields: "Location: \(operation.path)/\(document.prefetch)\r\n")
        } catch {
            switch error {
            case .tooMany: answerProblem(.prefetchesTooMany)
            }
        }
    }

    func listPrefetches() {
        send(PrefetchDocument.json(hall.node.prefetcher.documents()))
    }

    func showPrefetch(_ name: String) {
        guard let document = hall.node.prefetcher.document(name) else {
            return answerProblem(.prefetchUnknown)
        }
        send(document.json)
    }

    func cancelPrefetch(_ name: String) {
        guard let document = hall.node.prefetcher.cancel(name, on: hall.node) else {
            return answerProblem(.prefetchUnknown)
        }
        send(document.json, status: 202)
    }
}
