/** What the SDK's shared module does at run time. */

interface Contract {
  readonly name: string;
}

export function defineRpc<Definition extends Contract>(definition: Definition): Definition {
  if (!/^[a-z][a-z0-9._-]*$/.test(definition.name)) throw new Error(`Invalid plugin RPC method: ${definition.name}`);
  return definition;
}
