/// The OpenAPI 3.1 document of the admin port.
package enum OpenAPI {
    /// The media type of the document.
    package static let contentType = "application/json"

    /// Returns the document for a node of this version.
    package static func document(version: String) -> JSON {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "Nuthatch admin API", "version": .text(version),
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
                "description": .text(
                    "Counters start at zero with the process. Names end in _ms_ago for ages, in "
                        + "_ms for durations and in _bytes for sizes. All times are measured by "
                        + "the node that responds."),
            ],
            "servers": [["url": "/"]],
            "paths": .object(paths),
            "components": [
                "securitySchemes": [
                    "token": [
                        "type": "http", "scheme": "bearer",
                        "description": "A token from the file that admin-token-file names",
                    ]
                ],
                "schemas": ["Problem": ReceivedProblem.schema.json],
            ],
        ]
    }

    /// The path items with their operations, each path once.
    private static var paths: [JSON.Member] {
        var paths: [JSON.Member] = []
        for operation in AdminOperation.all {
            let method = JSON.Member(operation.method.lowercased(), operationObject(operation))
            if let place = paths.firstIndex(where: { $0.name == operation.path }),
                case .object(let methods) = paths[place].value
            {
                paths[place].value = .object(methods + [method])
            } else {
                paths.append(JSON.Member(operation.path, .object([method])))
            }
        }
        return paths
    }

    /// Returns the Operation Object of an operation.
    private static func operationObject(_ operation: AdminOperation) -> JSON {
        var members = [
            JSON.Member("operationId", .text(operation.id.rawValue)),
            JSON.Member("summary", .text(operation.summary)),
        ]
        if let role = operation.role {
            members.append(
                JSON.Member("description", .text("Requires the role \(role.rawValue).")))
            // A node without tokens needs none on loopback.
            members.append(JSON.Member("security", [["token": []], [:]]))
        } else {
            members.append(JSON.Member("security", []))
        }
        if !operation.parameters.isEmpty {
            members.append(
                JSON.Member("parameters", .list(operation.parameters.map(parameter))))
        }
        if let body = operation.body {
            members.append(
                JSON.Member(
                    "requestBody",
                    [
                        "required": true,
                        "content": ["application/json": ["schema": body.schema.json]],
                    ]))
        }
        members.append(
            JSON.Member(
                "responses",
                .object(
                    operation.responses.map { JSON.Member("\($0.status)", response($0)) })))
        return .object(members)
    }

    /// Returns the Parameter Object of a parameter.
    private static func parameter(_ parameter: AdminParameter) -> JSON {
        [
            "name": .text(parameter.name), "in": parameter.isInPath ? "path" : "query",
            "required": .bool(parameter.isRequired), "description": .text(parameter.meaning),
            "schema": parameter.schema.json,
        ]
    }

    /// Returns the Response Object of a response.
    private static func response(_ response: AdminOperation.Response) -> JSON {
        let (type, schema) =
            response.content
            ?? (problemType, JSONSchema(["$ref": "#/components/schemas/Problem"]))
        return [
            "description": .text(response.meaning),
            "content": .object(
                ([type] + response.otherTypes).map { JSON.Member($0, ["schema": schema.json]) }),
        ]
    }

    /// The media type of problem documents (RFC 9457).
    static let problemType = "application/problem+json"

    /// Returns the schema of a problem document with an additional member.
    static func problem(with member: JSONSchema.Property) -> JSONSchema {
        .object(ReceivedProblem.fields.map(\.property) + [member])
    }
}
