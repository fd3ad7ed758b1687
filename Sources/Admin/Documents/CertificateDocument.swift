/// One certificate that the node presents or trusts; `/admin/v1/certificates` lists all.
package struct CertificateDocument: ListedDocument {
    /// The file that the configuration names.
    package var file = ""
    /// The names in the certificate: of hosts, or the subject if there are none.
    package var names: [String] = []
    /// The end of the validity, as in `2027-11-21T01:02:03Z`.
    package var notAfter = ""
    /// The number of whole days until then; negative once it has passed.
    package var daysLeft = 0
    /// The purpose: a raw value of ``Use``, or one that only newer versions know.
    package var use = Use.clients.rawValue

    /// The purpose of a certificate.
    package enum Use: String, CaseIterable, Sendable {
        /// The certificate is presented to clients, and to operators if `client-ca` is set.
        case clients
        /// The certificate is presented on the admin port alone.
        case admin
        /// The certificate is an issuer of operators' certificates (`client-ca`).
        case operators
        /// The certificate is an issuer of origins' certificates (`origin-ca`).
        case origins
    }

    /// Creates an empty document.
    package init() {}

    /// The name of the list.
    package static let listName = "certificates"

    /// The members.
    package static let fields: [Field] = [
        .required("file", \.file),
        .required("names", \.names),
        .required("not_after", \.notAfter),
        .required(
            "days_left", \.daysLeft, "Whole days until then; negative once it has passed",
            as: .anyInteger),
        .required("use", \.use, as: .enumeration(Use.self)),
    ]
}
