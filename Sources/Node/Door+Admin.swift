import Admin
import Ground
import HTTPRules
import NIOCore
import Telemetry
import Wire

extension Door {
    /// Answers a request to the admin port.
    func answerAdmin(_ bytes: Span<UInt8>) {
        switch route(bytes) {
        case .page(let page): send(page)
        case .notFound: answerProblem(.adminNotFound)
        case .methodNotAllowed: answerProblem(.methodNotAllowed)
        }
    }

    /// Answers what is not for the image API: the health pages; or 404, or 405 for methods that
    /// nothing here takes.
    func answerOther(_ bytes: Span<UInt8>) {
        switch route(bytes) {
        case .page(let page) where page != .metrics: send(page)
        case .methodNotAllowed: answerProblem(.methodNotAllowed)
        case .page, .notFound:
            if case .image = ImageTarget.parse(bytes, at: parser.path.range) {
                return answerProblem(.methodNotAllowed)
            }
            answerProblem(.notFound)
        }
    }

    private func route(_ bytes: Span<UInt8>) -> AdminRoute {
        AdminRoute(
            method: String(decoding: bytes.copy(parser.methodName.range), as: UTF8.self),
            target: String(decoding: bytes.copy(parser.path.range), as: UTF8.self))
    }

    private func send(_ page: AdminPage) {
        let node = hall.node
        let answer = AdminAnswer(page, readiness: node.readiness.value, snapshot: node.snapshot())
        sendText(
            status: answer.status, contentType: answer.contentType, Array(answer.body.utf8),
            fields: "Cache-Control: no-store\r\n")
    }
}
