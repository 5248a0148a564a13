//! Prints a CRD as JSON, for a look at its size and shape.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for crd in steward_api::crds::all()? {
        println!("{}", serde_json::to_string(&crd)?);
    }
    for policy in steward_api::rules::policies::objects() {
        println!("{policy}");
    }
    Ok(())
}
