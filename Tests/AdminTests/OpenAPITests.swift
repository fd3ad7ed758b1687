import Admin
import Testing

@Suite("The OpenAPI description")
struct OpenAPITests {
    private let document = OpenAPI.document(version: "1.2.3")

    private func members(_ value: JSON?) -> [JSON.Member] {
        if case .object(let members) = value { members } else { [] }
    }

    @Test("The description has every operation once, under its id, and no others")
    func operations() {
        var ids: [String] = []
        for path in members(document["paths"]) {
            for method in members(path.value) {
                guard case .text(let id) = method.value["operationId"] else {
                    Issue.record("\(method.name) \(path.name) has no id")
                    continue
                }
                ids.append(id)
                let operation = AdminOperation.ID(rawValue: id).map(AdminOperation.operation)
                #expect(operation?.path == path.name)
                #expect(operation?.method.lowercased() == method.name)
            }
        }
        #expect(ids.sorted() == AdminOperation.ID.allCases.map(\.rawValue).sorted())
    }

    @Test("Every path parameter is described and required", arguments: AdminOperation.all)
    func parameters(_ operation: AdminOperation) {
        let named = operation.path.matches(of: /\{([a-z]+)\}/).map { String($0.output.1) }
        let described = operation.parameters.filter(\.isInPath)
        #expect(described.map(\.name) == named)
        #expect(described.filter { !$0.isRequired }.isEmpty)
        #expect(Set(operation.parameters.map(\.name)).count == operation.parameters.count)
    }

    @Test(
        "Every status is described once; an operation with a role describes 401",
        arguments: AdminOperation.all)
    func answers(_ operation: AdminOperation) {
        let statuses = operation.responses.map(\.status)
        #expect(Set(statuses).count == statuses.count, "\(operation.id)")
        #expect(statuses.contains(401) == (operation.role != nil))
        #expect(statuses.contains(413) == (operation.body != nil))
        for response in operation.responses where response.content == nil {
            #expect(response.status >= 400)
        }
    }

    @Test("No operation for the read role changes anything")
    func roles() {
        for operation in AdminOperation.all where operation.method != "GET" {
            #expect((operation.role ?? .read) > .read, "\(operation.id)")
        }
    }
}
