import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Synchronization

/// What operators have fetched before clients ask for it.
extension RequestHandler {
    func startPrefetch(_ body: [UInt8], _ operation: AdminOperation) {
        let node = context.node
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return sendProblem(.bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        guard !node.isStopping.load(ordering: .relaxed) else { return sendProblem(.nodeStopping) }
        // Ten thousand URLs take longer to read than a loop may be held up.
        let read = runOnThread {
            Result { try JSONDecoder().decode(PrefetchRequest.self, from: Data(body)) }
        }
        respondLater(read) { handler, result in
            switch result {
            case .success(let request): handler.begin(request, operation)
            case .failure(let error):
                handler.sendProblem(.invalidAdminBody(RequestBodyError(decodingError: error)))
            }
        }
    }

    private func begin(_ request: PrefetchRequest, _ operation: AdminOperation) {
        let node = context.node
        guard !node.isStopping.load(ordering: .relaxed) else { return sendProblem(.nodeStopping) }
        do throws(PrefetchJobTable.StartError) {
            let document = try node.prefetcher.begin(request, on: node)
            send(
                document.json, status: 202,
                fields: "Location: \(operation.path)/\(document.prefetch)\r\n")
        } catch {
            switch error {
            case .tooManyRunning: sendProblem(.prefetchesTooMany)
            }
        }
    }

    func sendPrefetches() {
        send(PrefetchDocument.json(context.node.prefetcher.documents()))
    }

    func sendPrefetch(_ name: String) {
        guard let document = context.node.prefetcher.document(name) else {
            return sendProblem(.prefetchUnknown)
        }
        send(document.json)
    }

    func cancelPrefetch(_ name: String) {
        guard let document = context.node.prefetcher.cancel(name, on: context.node) else {
            return sendProblem(.prefetchUnknown)
        }
        send(document.json, status: 202)
    }
}
