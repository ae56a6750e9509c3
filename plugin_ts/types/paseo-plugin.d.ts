/**
 * The part of the plugin SDK (Paseo 0.8 and later) that this plugin uses. The host supplies these modules; what is declared
 * here is what its reference page promises, and no more.
 */

declare module "@getpaseo/plugin" {
  import type { ZodType, input, output } from "zod";

  export interface PluginRpcContract<Input extends ZodType = ZodType, Output extends ZodType = ZodType> {
    readonly name: string;
    readonly input: Input;
    readonly output: Output;
  }
  export function defineRpc<Input extends ZodType, Output extends ZodType>(
    contract: PluginRpcContract<Input, Output>,
  ): PluginRpcContract<Input, Output>;
  /** What a handler receives. */
  export type RpcInput<Contract extends PluginRpcContract> = output<Contract["input"]>;
  /** What a caller receives. */
  export type RpcOutput<Contract extends PluginRpcContract> = output<Contract["output"]>;
  /** What a caller gives. */
  export type RpcArgument<Contract extends PluginRpcContract> = input<Contract["input"]>;
}

declare module "@getpaseo/plugin/server" {
  import type { PluginRpcContract } from "@getpaseo/plugin";
  import type { ZodType, input, output } from "zod";

  export interface PluginServerContext {
    handle<Input extends ZodType, Output extends ZodType>(
      contract: PluginRpcContract<Input, Output>,
      handler: (request: output<Input>) => input<Output> | Promise<input<Output>>,
    ): void;
  }
}

declare module "@getpaseo/plugin/client" {
  import type { PluginRpcContract } from "@getpaseo/plugin";
  import type { ComponentType } from "react";
  import type { ZodType, input, output } from "zod";

  export interface PluginTheme {
    readonly colors: {
      readonly surface0: string;
      readonly surface1: string;
      readonly surface2: string;
      readonly border: string;
      readonly foreground: string;
      readonly foregroundMuted: string;
      readonly accent: string;
      readonly accentForeground: string;
      readonly statusSuccess: string;
      readonly statusWarning: string;
      readonly statusDanger: string;
    };
  }
  export interface PluginSurfaceProps {
    readonly theme: PluginTheme;
    readonly host: { readonly id: string; readonly label: string };
    readonly layout: { readonly compact: boolean; readonly platform: "ios" | "android" | "web" };
  }
  export interface PluginWorkspacePanelProps extends PluginSurfaceProps {
    readonly context: "workspace";
    readonly workspaceId: string;
  }
  export interface PluginWorkspaceSnapshot {
    readonly id: string;
    readonly projectId: string;
    readonly projectRootPath: string;
    readonly directory: string;
    readonly kind: "directory" | "local_checkout" | "checkout" | "worktree";
    readonly name: string;
  }

  interface Contribution {
    readonly id: string;
    readonly title: string;
    readonly icon: string;
  }
  interface CommandCenterItem extends Contribution {
    readonly keywords?: readonly string[];
  }
  interface GlobalCommandContext {
    openSurface(id: string): void;
  }
  interface WorkspaceCommandContext extends GlobalCommandContext {
    openPanel(id: string): void;
  }
  export interface PluginClientContext {
    addSurface(id: string, component: ComponentType<PluginSurfaceProps>): () => void;
    addSidebarItem(item: Contribution & { readonly surface: string }): () => void;
    addWorkspacePanel(
      panel: Contribution & {
        readonly context: "workspace";
        readonly Component: ComponentType<PluginWorkspacePanelProps>;
      },
    ): () => void;
    addCommandCenterItem(
      item:
        | (CommandCenterItem & { readonly context: "global"; onSelect(context: GlobalCommandContext): void })
        | (CommandCenterItem & { readonly context: "workspace"; onSelect(context: WorkspaceCommandContext): void }),
    ): () => void;
  }

  /** The function is the same one for as long as the contract is. */
  export function useRpc<Input extends ZodType, Output extends ZodType>(
    contract: PluginRpcContract<Input, Output>,
  ): (request: input<Input>) => Promise<output<Output>>;
  /** Null when there is no such workspace; compared shallowly. */
  export function useWorkspace<Selection>(
    workspaceId: string,
    select: (workspace: PluginWorkspaceSnapshot) => Selection,
  ): Selection | null;
}
