import Admin
import Ground
import HTTPRules
import Wire

/// What scrapers ask for.
extension RequestHandler {
    /// Every metric, in the format that the request asks for.
    func sendMetrics(to request: BufferedRequest) {
        let head = request.head.span
        let accept = request.lines.filter { $0.id == .accept }.map { head.copy($0.value.range) }
        let format = MetricsFormat(accepting: accept)
        sendText(
            status: 200, contentType: format.contentType,
            MetricsExposition.render(context.node.snapshotWithMembers(), as: format),
            fields: "Cache-Control: no-store\r\nVary: Accept\r\n")
    }
}
